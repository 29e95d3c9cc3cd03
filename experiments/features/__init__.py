"""Public features of images: the same whatever the data, so that they cost no privacy."""
