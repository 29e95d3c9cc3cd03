"""Features of images that do not depend on the private data, so that they cost no privacy."""
