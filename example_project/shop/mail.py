"""E-mail into a folder, one file per message, to be opened with any mail program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from django.core.mail import EmailMessage
from django.core.mail.backends import filebased


class EmlFileBackend(filebased.EmailBackend):
    """Django's file backend, but each message is a file of its own, named by its id.

    Django's joins whatever one connection sends to a ``.log`` file. Here a message that
    is sent twice is one file: the second replaces the first.
    """

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Write each message to a file."""
        for email in email_messages:
            message = email.message()
            name = re.sub(r"[^\w.@-]", "_", message["Message-ID"].strip("<>"), flags=re.ASCII)
            Path(self.file_path, f"{name}.eml").write_bytes(message.as_bytes())
        return len(email_messages)
