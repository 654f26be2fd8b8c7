"""The catalogue, and changing how something is offered."""

import hashlib
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.models import User
from accounts.roles import Permission
from allocations.schedule import LONGEST_DRAIN, LONGEST_GRACE, WhenOver
from catalogue import actions as offering_actions
from catalogue import page as catalogue_page
from catalogue.models import OfferingSetting, prices_of, setting_of
from catalogue.offering import Gate, Offering
from catalogue.offerings import OFFERINGS
from web.edits import KeepsOthersEdits
from web.fields import AmountField, StrictForm, WholeNumberField
from web.refusals import Refused

QUICK = {"up", "down", "on", "off"}
ENDS = ("grace_hours", "when_over", "drain_hours")


def price_field(name: str) -> str:
    """The name of the field with a price: the same however many prices there are by the time it is sent."""
    return f"price_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class OfferingChangeForm(KeepsOthersEdits, StrictForm):
    """How something is offered; a price that is left empty takes the choice away."""

    also = KeepsOthersEdits.also | {"do"}

    enabled = forms.BooleanField(label="Offered", required=False)
    gate = forms.ChoiceField(
        label="Decided by",
        choices=[(gate.value, gate.words.capitalize()) for gate in Gate],
        widget=forms.RadioSelect,
    )
    grace_hours = WholeNumberField(
        label="Kept after the end",
        least=0,
        most=LONGEST_GRACE,
        of="hours",
        required=False,
        help_text="Without charge; nobody else has the GPUs meanwhile.",
    )
    when_over = forms.ChoiceField(
        label="Work that still runs then",
        choices=[(each.value, each.words.capitalize()) for each in WhenOver],
        widget=forms.RadioSelect,
        required=False,
    )
    drain_hours = WholeNumberField(
        label="Until it is stopped",
        least=0,
        most=LONGEST_DRAIN,
        of="hours",
        required=False,
        help_text="Where it may go on for some hours.",
    )
    new_name = forms.CharField(label="Something new", required=False, max_length=60)
    new_price = AmountField(
        label="Its price in USD",
        required=False,
        min_value=0,
        max_digits=10,
        decimal_places=4,
    )

    def __init__(
        self, data: Any, *, offering: Offering, setting: OfferingSetting
    ) -> None:
        begins = {
            "enabled": setting.enabled,
            "gate": setting.gate,
            **offering_actions.ends_of(setting),
        }
        super().__init__(data, label_suffix="", initial=begins)
        prices = {
            **dict.fromkeys([*offering.prices, *setting.prices]),
            **prices_of(offering, setting),
        }
        self.priced = {price_field(name): name for name in prices}
        for field, name in self.priced.items():
            self.fields[field] = AmountField(
                label=name,
                required=False,
                min_value=0,
                max_digits=10,
                decimal_places=4,
                initial=prices[name],
                help_text=""
                if prices[name] is not None
                else "Not offered: it has no price.",
            )
        if not offering.on_cluster:
            for field in ENDS:
                del self.fields[field]
        is_open = bool(offering.prices) and "access" not in offering.spec.model_fields
        if not is_open:
            del self.fields["new_name"], self.fields["new_price"]

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for a new name without a price, or a price without a name."""
        said = super().clean()
        name, price = said.get("new_name"), said.get("new_price")
        if bool(name) != (price is not None) and "new_price" not in self.errors:
            self.add_error(
                "new_price" if name else "new_name", "Name and price go together."
            )
        return said

    @property
    def price_fields(self) -> list[forms.BoundField]:
        """A field for each price."""
        return [self[name] for name in self.priced]

    def ends(self) -> dict[str, Any]:
        """How it ends, for the action; what was left empty stays."""
        said = self.cleaned_data
        return {name: said[name] for name in ENDS if said.get(name) not in (None, "")}

    def prices(self) -> dict[str, Decimal | None] | None:
        """What the action takes; None for what has no prices of its own."""
        if not self.priced:
            return None
        said = self.cleaned_data
        found: dict[str, Decimal | None] = {
            name: said[field] for field, name in self.priced.items()
        }
        return found | (
            {said["new_name"]: said["new_price"]} if said.get("new_name") else {}
        )


@require_safe
def catalogue(request: HttpRequest) -> HttpResponse:
    """Everything that may be asked for."""
    user = visitor(request)
    return render(
        request,
        "approvals/catalogue.html",
        {
            "cards": catalogue_page.cards(user),
            "may_manage": user.may(Permission.MANAGE_CATALOGUE),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def offering(request: HttpRequest, key: str) -> HttpResponse:
    """Change an offering: its form, or one of the small buttons of its card."""
    user = _manager(request)
    if key not in OFFERINGS:
        raise Http404
    chosen, setting = OFFERINGS[key], setting_of(OFFERINGS[key])
    do = request.POST.get("do", "")
    if do in QUICK:
        _quick(key, do, by=user)
        return HttpResponseRedirect(f"{reverse('catalogue')}#{key}")
    form = OfferingChangeForm(
        request.POST if request.method == "POST" else None,
        offering=chosen,
        setting=setting,
    )
    status = 200 if request.method != "POST" else 422
    if form.is_valid():
        said = form.cleaned_data
        try:
            offering_actions.change(
                key,
                by=user,
                enabled=said["enabled"],
                gate=said["gate"],
                prices=form.prices(),
                **form.ends(),
            )
            messages.success(request, f"Saved: {chosen.name}.")
            return HttpResponseRedirect(f"{reverse('catalogue')}#{key}")
        except Refused as refusal:
            status = add_refusal(form, refusal)
    response = render(
        request,
        "approvals/offering.html",
        {"form": form, "offering": chosen, "setting": setting},
        status=status,
    )
    return with_refusal(response, form) if status != 200 else response


def _quick(key: str, do: str, *, by: User) -> None:
    if do in ("up", "down"):
        offering_actions.move(key, by=by, up=do == "up")
    else:
        offering_actions.change(key, by=by, enabled=do == "on")


def _manager(request: HttpRequest) -> User:
    user = visitor(request)
    if not user.may(Permission.MANAGE_CATALOGUE):
        raise PermissionDenied("Platform leads change the catalogue.")
    return user
