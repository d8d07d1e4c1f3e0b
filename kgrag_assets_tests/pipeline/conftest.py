"""Fixtures of the pipeline's tests."""

from kgrag_assets_tests.servers import running_openai_server

__all__ = ["running_openai_server"]
