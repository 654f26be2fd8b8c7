"""The product's words in place of those that Django and Django REST framework have for values that do not fit.

Each says what was wrong and what to do. They are put onto the frameworks' classes once, when the portal starts, so that
they hold for every serializer and form, whoever writes it.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core import validators
from rest_framework import exceptions, serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

Sentences = Mapping[str, str]
LARGEST, SMALLEST = "The largest possible value is", "The smallest possible value is"
NUMBER = {
    "invalid": "This is not a number. Write digits, such as 25.",
    "max_value": f"{LARGEST} {{max_value}}.",
    "min_value": f"{SMALLEST} {{min_value}}.",
    "max_string_length": "This number is too long to be read.",
}
LISTED = {
    "not_a_list": "This is not a list. Send the values in brackets: […].",
    "empty": "The list is empty. Name at least one.",
    "min_length": "The list is too short. Name at least {min_length}.",
    "max_length": "The list is too long. Name {max_length} at most.",
}
DIGITS = {
    "max_digits": "The number is too long. Use {max_digits} digits at most.",
    "max_whole_digits": "The number is too large. Use {max_whole_digits} digits at most before the point.",
    "max_decimal_places": "The number is too exact. Use {max_decimal_places} decimal places at most.",
}
OF_FIELDS: Mapping[type[serializers.Field[Any, Any, Any, Any]], Sentences] = {
    serializers.Field: {
        "required": "This field is missing. Send a value for it.",
        "null": "null is not a value for this field. Send another one.",
    },
    serializers.BooleanField: {
        "invalid": "This is neither true nor false. Send one of them without quotes."
    },
    serializers.CharField: {
        "invalid": "This is not a text. Send one in quotes.",
        "blank": "This text is empty. Write something.",
        "max_length": "This text is too long. Write {max_length} characters at most.",
        "min_length": "This text is too short. Write at least {min_length} characters.",
    },
    serializers.UUIDField: {
        "invalid": "This is not an object id. Send one such as 0d9f4a4e-5a9b-4c57-9d3a-2f6f2f9d1c11."
    },
    serializers.IntegerField: NUMBER
    | {"invalid": "This is not a whole number. Write digits alone, such as 3."},
    serializers.DecimalField: NUMBER | DIGITS,
    serializers.DateTimeField: {
        "invalid": "This is not a time. Send one with its zone, such as 2026-12-31T18:00:00Z.",
        "date": "This is a day without a time. Send both, such as 2026-12-31T18:00:00Z.",
        "make_aware": "This time does not exist in the zone {timezone}. Send it in UTC.",
        "overflow": "This time is too far away. Send another one.",
    },
    serializers.ChoiceField: {
        "invalid_choice": "“{input}” cannot be chosen here. Send one of the listed values."
    },
    serializers.ListField: LISTED,
    serializers.DictField: {
        "not_a_dict": "This is not an object. Send names and values in braces: {{…}}.",
        "empty": "The object is empty. Send at least one name with its value.",
    },
    serializers.Serializer: {
        "invalid": "This is not an object. Send its fields in braces: {{…}}."
    },
    serializers.ListSerializer: LISTED,
}
OF_FORMS: Mapping[type[forms.Field], Sentences] = {
    forms.Field: {"required": "Nothing stands here yet. Fill it in."},
    forms.IntegerField: {
        "invalid": "This is not a whole number. Write digits alone, such as 3."
    },
    forms.FloatField: {"invalid": "This is not a number. Write digits, such as 25."},
    forms.DecimalField: {
        "invalid": "This is not an amount. Write digits and at most one point, such as 12.50."
    },
    forms.DateField: {"invalid": "This is not a day. Write one like 2026-11-28."},
    forms.EmailField: {
        "invalid": "This is not an e-mail address. Write one like ada@example.com."
    },
    forms.ChoiceField: {
        "invalid_choice": "“%(value)s” cannot be chosen here. Choose one of the list."
    },
    forms.MultipleChoiceField: {
        "invalid_choice": "“%(value)s” cannot be chosen here. Choose from the list.",
        "invalid_list": "This is not a list. Choose from those that are shown.",
    },
    forms.ModelChoiceField: {
        "invalid_choice": "This cannot be chosen here. Choose one of the list."
    },
    forms.URLField: {
        "invalid": "This is not an address. Write one like https://example.com."
    },
    forms.FileField: {
        "invalid": "No file came with the form. Choose it again.",
        "missing": "No file came with the form. Choose it again.",
        "empty": "The file is empty. Choose another one.",
        "max_length": "The name of the file is too long. Use %(max)d characters at most.",
        "contradiction": "A file is chosen and is to be cleared, too. Do one of the two.",
    },
}
OF_VALIDATORS: Mapping[type, str] = {
    validators.RegexValidator: "This is not written as it has to be. Look at the example beside it.",
    validators.EmailValidator: "This is not an e-mail address. Write one like ada@example.com.",
    validators.URLValidator: "This is not an address. Write one like https://example.com.",
    validators.MaxValueValidator: f"{LARGEST} %(limit_value)s.",
    validators.MinValueValidator: f"{SMALLEST} %(limit_value)s.",
    validators.StepValueValidator: "This has to be a multiple of %(limit_value)s.",
    validators.MinLengthValidator: "This text is too short. Write at least %(limit_value)d characters.",
    validators.MaxLengthValidator: "This text is too long. Write %(limit_value)d characters at most.",
    validators.ProhibitNullCharactersValidator: "The text has a character that cannot be stored (U+0000). Remove it.",
    ProhibitSurrogateCharactersValidator: "The text has half a character (U+{code_point:X}). Remove it.",
}
OF_DECIMALS = {
    "invalid": "This is not an amount. Write digits and at most one point, such as 12.50.",
    "max_digits": "The number is too long. Use %(max)s digits at most.",
    "max_decimal_places": "The number is too exact. Use %(max)s decimal places at most.",
    "max_whole_digits": "The number is too large. Use %(max)s digits at most before the point.",
}
OF_CALLS: Mapping[type[exceptions.APIException], str] = {
    exceptions.APIException: "The call could not be carried out. Try it again.",
    exceptions.ValidationError: "This value cannot be taken. Send another one.",
    exceptions.ParseError: "The body cannot be read. Send a JSON object.",
    exceptions.AuthenticationFailed: "The token is not valid here. Make a new one on the page Tokens.",
    exceptions.NotAuthenticated: "The call has no token. Make one on the page Tokens, and send it as Bearer TOKEN.",
    exceptions.PermissionDenied: "Your roles and teams do not allow this. Ask a platform lead.",
    exceptions.NotFound: "There is no such thing, or it is not yours to see.",
    exceptions.MethodNotAllowed: "{method} does nothing at this address. Allow names what does.",
    exceptions.NotAcceptable: "Only JSON is answered here. Accept application/json.",
    exceptions.UnsupportedMediaType: "The body is “{media_type}”. Send JSON, with Content-Type: application/json.",
    exceptions.Throttled: "There were too many calls in a short time.",
}


def apply() -> None:
    """Put every sentence in its place; doing it again changes nothing."""
    for field, sentences in [*OF_FIELDS.items(), *OF_FORMS.items()]:
        known: Any = field
        known.default_error_messages = {
            **vars(known).get("default_error_messages", {}),
            **sentences,
        }
    for validator, sentence in OF_VALIDATORS.items():
        validator.message = sentence  # type: ignore[attr-defined]
    validators.validate_slug.message = (
        "Write letters, digits, hyphens and underscores alone, such as training-eastus."
    )
    validators.DecimalValidator.messages = dict(OF_DECIMALS)
    for error, sentence in OF_CALLS.items():
        error.default_detail = sentence
    exceptions.Throttled.extra_detail_singular = "Try again in {wait} second."
    exceptions.Throttled.extra_detail_plural = "Try again in {wait} seconds."
