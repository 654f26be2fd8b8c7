"""Requests to Azure for more quota: asked by platform leads, sent and followed by workers."""
