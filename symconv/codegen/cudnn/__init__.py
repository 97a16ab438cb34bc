"""cuDNN's graph API: what it takes, its plans for GPUs that need not be there, kept and loaded again."""
