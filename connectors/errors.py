"""The two words an outside system's failure comes in; they decide every retry."""

LONGEST = 500


class ConnectorError(Exception):
    """Something an outside system answered or failed to answer; the text is cut, and never holds a secret."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message if len(message) <= LONGEST else message[:LONGEST] + "…"
        )

    @property
    def message(self) -> str:
        """The text, fit for a page."""
        return str(self.args[0])


class TemporaryError(ConnectorError):
    """Worth trying again; `retry_after` is the seconds the other side asked for, None when it did not say."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PermanentError(ConnectorError):
    """Trying again changes nothing; `code` names the kind of failure in snake case, empty when unknown."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class AnswerLost(TemporaryError):
    """The connection ended after the call was sent, or the answer did: whether the other side did it is not known."""
