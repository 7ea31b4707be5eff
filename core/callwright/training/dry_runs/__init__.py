"""What a dry run says without data, models or a GPU."""
