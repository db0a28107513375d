"""Worker processes: started, fed, watched, ended."""
