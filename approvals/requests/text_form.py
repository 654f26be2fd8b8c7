"""What is written to the other side of a request: an answer, a comment."""

from django import forms

from web.fields import LONGEST_TEXT, StrictForm


class TextForm(StrictForm):
    """One text, which may not be empty."""

    also = StrictForm.also | {"do"}

    text = forms.CharField(
        label="Your answer",
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Write something first."},
    )
