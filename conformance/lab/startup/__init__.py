"""What runs in the lab's Windows Python before anything else."""
