"""What a results folder holds: typed models of its files, and their items as the bridge sees them."""
