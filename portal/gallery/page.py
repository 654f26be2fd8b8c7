"""The forms and the frame of /styleguide, the same on every day it is looked at."""

from django import forms

from portal.gallery.samples import ANSWERS, BADGES_AND_FIGURES, LISTS, NOW, STORIES


class SampleForm(forms.Form):
    """One field of each kind."""

    kind = forms.ChoiceField(
        label="Kind", choices=[("a100", "A100 80 GB · training-eastus")]
    )
    gpus = forms.IntegerField(label="GPUs", min_value=1, help_text="Automatic up to 2.")
    purpose = forms.ChoiceField(
        label="For",
        widget=forms.RadioSelect,
        choices=[("training", "training"), ("notebook", "notebook")],
    )
    reason = forms.CharField(
        label="Why",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Asked when a person decides.",
    )
    remind = forms.BooleanField(
        label="Remind me three days before the end", required=False
    )
    preset = forms.ChoiceField(
        label="Start from",
        required=False,
        choices=[("t4", ""), ("a100", ""), ("h100", "")],
    )


class SampleFilter(forms.Form):
    """What a list is filtered by."""

    q = forms.CharField(label="Search", required=False)
    state = forms.ChoiceField(
        label="State", required=False, choices=[("", "any"), ("waiting", "waiting")]
    )
    kind = forms.ChoiceField(
        label="GPU", required=False, choices=[("", "any"), ("a100", "A100 80 GB")]
    )


def samples() -> dict[str, object]:
    """Context of templates/gallery.html, without the frame's own keys."""
    refused = SampleForm(
        {"kind": "a100", "gpus": "0", "purpose": "training", "preset": "a100"},
        auto_id="again_%s",
    )
    refused.full_clean()
    return {
        "now": NOW,
        "first": {"label": "Ask for GPUs", "href": "#ask"},
        "form": SampleForm(
            initial={"gpus": 2, "purpose": "training", "preset": "a100"}
        ),
        "refused": refused,
        "filter": SampleFilter({"q": ""}, auto_id="filter_%s"),
        **BADGES_AND_FIGURES,
        **ANSWERS,
        **STORIES,
        **LISTS,
    }


def frame(approvals: int = 3) -> dict[str, object]:
    """What the frame needs from a page, as a platform lead would see it."""
    rail = [
        ("Home", "house", "g h", 0),
        ("Requests", "inbox", "g r", 0),
        ("Teams", "users", "g t", 0),
        ("Approvals", "stamp", "g a", approvals),
        ("Clusters", "server", "g c", 0),
        ("Policy", "scale", "g p", 0),
        ("Audit", "scroll-text", "g u", 0),
    ]
    return {
        "person": {
            "name": "Priya Raman",
            "role_words": "Platform lead",
            "initials": "PR",
        },
        "rail": [
            {
                "label": label,
                "url": f"#{icon}",
                "icon": icon,
                "count": count,
                "current": label == "Teams",
                "key": key,
            }
            for label, icon, key, count in rail
        ],
        "teams_switch": {
            "current": "Vision",
            "items": [
                {"label": "Vision", "href": "#v", "current": True},
                {"label": "NLP", "href": "#n"},
            ],
        },
        "request_id": "01KAJ7Q2M8",
    }
