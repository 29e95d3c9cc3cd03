"""What knows nothing of privacy: checks of arguments, files, command lines, numbers as text."""
