"""Judging: outcomes become opinions, and the opinions on a case become its verdict, a record."""
