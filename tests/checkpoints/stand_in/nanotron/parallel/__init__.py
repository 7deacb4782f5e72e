import os


class ParallelContext:
    def __init__(
        self,
        tensor_parallel_size: int,
        pipeline_parallel_size: int,
        data_parallel_size: int,
        context_parallel_size: int = 1,
        expert_parallel_size: int = 1,
        backend: str = "nccl",
    ) -> None:
        self.sizes = (tensor_parallel_size, pipeline_parallel_size, data_parallel_size)
        assert int(os.environ["WORLD_SIZE"]) == 1
        assert int(os.environ["RANK"]) == int(os.environ["LOCAL_RANK"]) == 0
        assert int(os.environ["MASTER_PORT"]) > 0
        assert os.environ["MASTER_ADDR"] == "localhost"
