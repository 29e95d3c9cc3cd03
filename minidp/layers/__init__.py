"""Norms, dropout, embeddings and the LSTM; `minidp.nn` has their names."""
