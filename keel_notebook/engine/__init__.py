"""Carries decisions out."""
