"""Records and protocols that every other room uses. Imports numpy only."""
