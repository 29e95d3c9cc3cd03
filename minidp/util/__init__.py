"""Helpers without privacy logic: checks of arguments, files, command lines, numbers as text."""
