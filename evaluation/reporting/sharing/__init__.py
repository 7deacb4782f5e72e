"""Results in formats that others read; nothing is sent anywhere."""
