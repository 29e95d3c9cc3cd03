"""Features of images that are the same whatever the private data, so that they cost no privacy."""
