"""Worker processes: how they are started, fed, watched and ended, and the program that they run."""
