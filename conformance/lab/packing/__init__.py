"""The lab as one file: what is kept of it, the file's format, and how it becomes a lab again in another folder."""
