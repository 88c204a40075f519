"""Forget one thing everywhere an AI agent remembers it, and prove it site by site."""

__version__ = "0.1.0"
