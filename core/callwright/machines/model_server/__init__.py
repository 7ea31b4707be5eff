"""Model servers: one client for samplers, teachers, simulated users and judges.

    server = Server(model="…", base_url="…", requests_per_minute=600)
    answers = server.all([lambda connection: connection.chat(messages, max_tokens=100)])

May import: errors, registration, and its neighbours in machines.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
