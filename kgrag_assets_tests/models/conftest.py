"""Fixtures of this room's tests."""

from kgrag_assets_tests.servers import noted_pause, running_ollama_server, running_openai_server

__all__ = ["noted_pause", "running_ollama_server", "running_openai_server"]
