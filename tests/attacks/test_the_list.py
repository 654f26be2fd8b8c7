"""Which test shows that an attack of the list of known ones is refused; every test that is named exists."""

from collections.abc import Mapping
from importlib import import_module

import pytest

DECIDING, FIELDS = "tests.attacks.test_deciding:", "tests.attacks.test_fields:"
LISTS, NUMBERS = "tests.attacks.test_lists:", "tests.attacks.test_numbers:"
TEXTS, TOKENS = "tests.attacks.test_texts:", "tests.attacks.test_tokens:"
CONTRACT, VIEWS = "tests.portal.test_api_contract:", "tests.accounts.test_views:"
REQUESTS, DECISIONS = (
    "tests.approvals.test_api_requests:",
    "tests.approvals.test_api_decisions:",
)
EVENTS, BEARER = "tests.portal.test_page_events:", "tests.connectors.test_entra_bearer:"
HUBS = "tests.notebooks.test_hub_profiles:"
RATES = "tests.portal.test_api_rates:"
MATRIX = "tests.portal.test_permission_matrix:test_every_address_answers_everybody_as_the_table_says"

# The numbers are those of the project's list of attacks; what is left out concerns clusters and the supply chain.
SHOWN_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "A1": (
        "another team's thing by its number",
        (
            CONTRACT + "test_anothers_things_are_like_missing_ones",
            LISTS + "test_anothers_new_things_are_like_missing_ones",
            LISTS + "test_pages_of_others_new_things_are_like_missing_ones",
            MATRIX,
            "tests.approvals.test_page_request:test_a_strangers_request_looks_like_a_missing_one",
            "tests.allocations.test_api_budgets:test_a_strangers_ledger_looks_like_a_missing_one",
            "tests.accounts.test_page_tokens:test_nobody_sees_or_revokes_anothers_token",
        ),
    ),
    "A2": (
        "lists and counts of another team",
        (
            LISTS + "test_no_list_tells_a_stranger_that_another_teams_things_exist",
            LISTS + "test_what_is_switched_off_is_told_to_platform_leads_alone",
            "tests.portal.test_api_lists:test_events_are_read_on_from_a_number_and_only_those_of_ones_teams",
            "tests.approvals.test_page_requests:test_a_stranger_sees_nothing_of_it",
            "tests.approvals.test_page_approvals:test_who_else_waits_is_shown_only_to_who_may_see_it",
            "tests.approvals.test_simulator:test_a_person_sees_the_asks_of_the_teams_they_see",
        ),
    ),
    "A3": (
        "orders and filters through relations",
        (
            REQUESTS + "test_parameters_that_do_not_fit_are_400",
            LISTS + "test_lists_take_no_order_filter_or_size_that_was_not_offered",
        ),
    ),
    "A5": (
        "the events of another team, and of one that was left",
        (
            EVENTS + "test_it_tells_members_of_changes_in_their_teams_alone",
            EVENTS + "test_somebody_who_left_the_team_hears_no_more_of_it",
            EVENTS + "test_it_ends_with_the_session_or_the_account",
            EVENTS + "test_nobody_listens_without_signing_in",
        ),
    ),
    "A6": (
        "asking for another team",
        (
            REQUESTS + "test_asking_for_another_team_is_like_asking_for_none",
            REQUESTS + "test_who_sees_every_team_still_cannot_ask_for_it",
            "tests.approvals.test_page_request_new:test_anothers_team_looks_like_one_that_does_not_exist",
            "tests.approvals.test_conversation:test_a_request_stays_with_its_team",
        ),
    ),
    "A7": (
        "changing protected fields",
        (
            FIELDS
            + "test_every_address_that_takes_a_body_names_what_is_not_for_the_caller",
            FIELDS
            + "test_fields_within_a_spec_and_within_each_decision_are_closed_too",
            FIELDS + "test_a_form_takes_no_field_that_it_does_not_have",
        ),
    ),
    "A8": (
        "sending fields that are the portal's",
        (
            REQUESTS + "test_fields_that_are_not_for_the_caller_are_refused_by_name",
            FIELDS
            + "test_every_address_that_takes_a_body_names_what_is_not_for_the_caller",
            FIELDS
            + "test_a_field_said_twice_or_with_a_zero_byte_does_not_slip_through",
        ),
    ),
    "A10": (
        "approving one's own request",
        (
            DECIDING + "test_nobody_decides_their_own_request_by_any_door",
            DECIDING + "test_a_seat_lent_in_either_direction_decides_no_own_request",
            DECIDING
            + "test_the_beneficiarys_tokens_decide_nothing_whatever_their_scope",
            DECIDING + "test_a_platform_lead_cannot_edit_what_they_then_decide",
            DECISIONS + "test_nobody_decides_their_own_request_with_any_token",
            "tests.approvals.test_decisions:test_the_database_too_refuses_a_vote_on_ones_own_request",
            "tests.approvals.test_escalation:test_who_stands_in_for_the_requester_does_not_decide",
            "tests.approvals.test_policy_actions:test_its_author_never_activates_it",
        ),
    ),
    "A11": (
        "deciding without the seat, or with one that is lent no more",
        (
            DECIDING + "test_a_role_without_the_seat_decides_nothing",
            DECIDING
            + "test_a_seat_that_is_lent_no_more_or_not_the_givers_any_more_decides_nothing",
            DECISIONS + "test_who_holds_no_seat_is_refused_and_it_is_remembered",
        ),
    ),
    "A12": (
        "deciding a version that was not seen",
        (
            DECIDING
            + "test_a_version_that_one_has_not_seen_is_not_decided_by_any_door",
            DECISIONS + "test_what_changed_since_is_not_decided",
            DECISIONS + "test_a_decision_says_which_version_was_seen",
            "tests.approvals.test_conversation:test_earlier_votes_are_void_and_who_gave_them_is_asked_again",
        ),
    ),
    "A13": (
        "voting twice, or many times at once",
        (
            DECIDING + "test_the_same_person_votes_once_whatever_the_doors",
            DECIDING + "test_a_stand_in_and_the_giver_are_one_voice",
            DECIDING + "test_what_is_decided_is_not_decided_again",
            DECISIONS + "test_many_votes_at_once_leave_one_decision",
            "tests.approvals.test_decisions:test_one_person_with_two_seats_takes_one_of_the_steps",
        ),
    ),
    "A15": (
        "numbers that are none",
        (
            NUMBERS + "test_what_is_no_number_is_refused_at_its_field_by_the_api",
            NUMBERS + "test_what_is_no_json_number_is_refused_as_no_json",
            NUMBERS + "test_what_is_no_number_is_refused_by_the_page",
            NUMBERS + "test_prices_limits_and_money_take_no_number_that_is_none",
            NUMBERS + "test_the_limits_are_where_they_are_said_to_be",
            "tests.allocations.test_budgets:test_holding_exactly_the_limit_is_possible_and_a_cent_more_is_not",
        ),
    ),
    "A16": (
        "times without sense",
        (
            NUMBERS
            + "test_times_without_sense_are_refused_when_asking_changing_and_previewing",
            NUMBERS
            + "test_an_hour_that_clocks_skip_is_one_moment_because_zones_are_offsets",
            NUMBERS + "test_a_wait_ends_after_it_starts",
            "tests.approvals.test_page_request_new:test_it_refuses_an_end_without_sense",
        ),
    ),
    "A17": (
        "a link that something opens",
        (
            DECIDING + "test_a_link_that_is_only_looked_at_changes_nothing",
            "tests.approvals.test_page_approvals:test_looking_never_decides",
            VIEWS + "test_a_link_signs_nobody_out_or_in",
            "tests.notices.test_rendering:test_the_one_button_leads_to_the_page_and_nothing_is_decided_by_a_link",
        ),
    ),
    "A19": (
        "a form of another site",
        (
            DECIDING + "test_a_form_from_another_site_decides_nothing",
            REQUESTS + "test_other_media_types_are_refused",
            CONTRACT + "test_a_session_is_no_token",
            VIEWS + "test_a_form_from_elsewhere_signs_nobody_out",
            "tests.portal.test_page_health:test_a_form_from_elsewhere_gets_the_page_of_refusals",
        ),
    ),
    "A20": (
        "a forged answer of the sign-in",
        (
            VIEWS + "test_a_wrong_or_missing_state_is_refused",
            VIEWS + "test_a_callback_is_good_once",
            VIEWS + "test_a_callback_is_good_in_the_browser_that_started_it_alone",
            VIEWS + "test_a_code_that_was_redeemed_is_refused",
            VIEWS + "test_a_token_with_another_nonce_is_refused",
        ),
    ),
    "A21": (
        "forged tokens of Entra ID",
        (
            BEARER + "test_it_refuses_a_forged_token",
            BEARER + "test_it_refuses_an_id_token",
            BEARER + "test_it_refuses_a_token_for_graph",
            BEARER + "test_it_refuses_a_changed_token",
            "tests.connectors.test_entra:test_it_refuses_a_bad_id_token",
        ),
    ),
    "A23": (
        "more groups than a token holds",
        (
            VIEWS + "test_more_groups_than_fit_a_token_are_asked_for",
            VIEWS + "test_it_lets_nobody_in_when_the_groups_cannot_be_asked_for",
            "tests.accounts.test_sweep:test_the_groups_of_somebody_with_too_many_for_a_token_are_all_known",
        ),
    ),
    "A25": (
        "rights that were taken away",
        (
            "tests.accounts.test_sweep:test_a_blocked_account_loses_session_token_teams_and_roles",
            "tests.accounts.test_sweep:test_who_left_a_group_leaves_its_team_and_loses_the_role_it_gave",
            "tests.accounts.test_freshness:test_who_is_confirmed_passes_until_five_minutes_are_over",
            DECIDING
            + "test_who_lost_the_role_after_the_page_opened_is_refused_at_the_vote",
            DECIDING
            + "test_a_decision_that_waits_for_the_directory_leaves_an_event_too",
            "tests.approvals.test_escalation:test_while_the_directory_is_silent_the_clock_goes_on_and_nobody_decides",
        ),
    ),
    "A26": (
        "a target elsewhere after signing in",
        (VIEWS + "test_a_target_elsewhere_leads_home",),
    ),
    "A27": (
        "a session that is kept or used again",
        (
            VIEWS + "test_the_session_gets_a_new_key",
            VIEWS + "test_a_cookie_is_dead_after_signing_out",
        ),
    ),
    "A28": (
        "tokens beyond their scope, team and life",
        (
            CONTRACT + "test_a_read_token_changes_nothing",
            CONTRACT + "test_the_secret_of_a_token_is_told_once",
            CONTRACT
            + "test_a_token_ends_when_it_is_revoked_expired_or_its_person_is_blocked",
            TOKENS + "test_a_token_without_the_scope_decides_nothing",
            TOKENS + "test_a_token_makes_no_token_that_may_more",
            TOKENS + "test_a_key_or_token_in_the_address_is_no_sign_in",
            HUBS + "test_a_hubs_key_opens_nothing_else",
            HUBS + "test_nobody_but_a_hub_with_its_key_is_answered",
        ),
    ),
    "A29": (
        "a token that outlives its owner's role",
        (
            TOKENS + "test_a_token_may_at_once_no_more_than_its_owner",
            TOKENS
            + "test_who_left_the_team_does_nothing_for_it_with_a_token_made_before",
        ),
    ),
    "A30": (
        "webhooks that lead inside",
        (
            "tests.connectors.test_webhooks:test_no_inner_address_is_called_however_it_is_written",
            "tests.connectors.test_webhooks:test_a_name_is_refused_when_any_of_its_addresses_is_an_inner_one",
            "tests.connectors.test_webhooks:test_a_name_that_turns_inwards_after_it_was_looked_at_gains_nothing",
            "tests.connectors.test_webhooks:test_it_reads_nothing_but_an_https_address_of_a_host_and_a_path",
            "tests.connectors.test_webhooks:test_only_the_port_of_https_is_called",
            "tests.connectors.test_webhooks:test_where_hosts_are_named_no_other_is_called",
            "tests.connectors.test_webhooks:test_a_host_that_is_named_may_still_not_be_an_inner_one",
            "tests.notices.test_webhooks:test_what_cannot_be_a_webhook_is_said_at_its_field",
            "tests.notices.test_channels:test_what_cannot_be_a_channel_is_said_at_its_field",
            "tests.notices.test_delivery:test_an_address_that_came_to_lead_inside_is_refused_when_sending_too",
        ),
    ),
    "A31": (
        "templates and YAML in texts and names",
        (
            TEXTS
            + "test_a_reason_a_question_an_answer_a_comment_and_a_note_are_text_everywhere",
            TEXTS + "test_names_with_more_than_letters_are_refused_at_their_field",
            TEXTS
            + "test_nothing_that_people_write_about_a_request_stands_in_a_manifest",
            TEXTS + "test_why_a_policy_changes_is_one_line_of_text",
        ),
    ),
    "A35": (
        "groups that are not the team's",
        (
            "tests.provisioning.test_manifest_rules:test_only_the_groups_object_id_is_bound_to_the_fixed_role",
            "tests.onboarding.test_actions:test_a_platform_lead_may_bring_any_group_and_others_only_their_own",
        ),
    ),
    "A41": (
        "secrets in what is said of an error",
        (
            BEARER + "test_the_refusal_does_not_repeat_the_token",
            "tests.connectors.test_webhooks:test_the_address_is_not_in_what_is_printed",
            "tests.notices.test_channels:test_the_address_is_shown_nowhere_once_it_is_saved",
            "tests.notices.test_webhooks:test_the_secret_is_told_once_and_stands_nowhere_else",
            "tests.accounts.test_actions:test_a_token_is_shown_once_and_only_its_digest_is_kept",
        ),
    ),
    "A43": (
        "markup, links and formulas in texts",
        (
            TEXTS
            + "test_a_reason_a_question_an_answer_a_comment_and_a_note_are_text_everywhere",
            TEXTS + "test_the_note_of_a_task_is_text",
            TEXTS + "test_the_audit_log_shows_it_as_text",
            TEXTS
            + "test_the_api_gives_back_what_was_written_as_json_and_never_as_a_page",
            "tests.notices.test_rendering:test_html_of_people_is_text_in_a_mail",
            "tests.notices.test_rendering:test_a_mention_or_link_of_people_is_text_in_slack_and_teams",
        ),
    ),
    "A44": (
        "markup in the address of a list",
        (LISTS + "test_no_page_reflects_markup_of_its_address_or_breaks_by_it",),
    ),
    "A45": (
        "too many calls, over all processes",
        (
            RATES + "test_the_call_over_the_limit_is_told_when_to_come_back",
            RATES
            + "test_reading_and_writing_are_counted_apart_and_tokens_of_a_person_together",
            "tests.accounts.test_sign_in_rate:test_too_many_starts_from_one_address_are_refused_for_a_minute",
            "tests.faults.test_rates:test_a_person_who_calls_two_web_servers_in_turns_has_one_limit",
        ),
    ),
    "A47": (
        "pages of any size",
        (
            REQUESTS + "test_parameters_that_do_not_fit_are_400",
            LISTS + "test_lists_take_no_order_filter_or_size_that_was_not_offered",
        ),
    ),
    "A49": (
        "addresses that scanners try, and forged headers",
        (
            LISTS + "test_nothing_is_at_the_addresses_that_scanners_try",
            "tests.portal.test_page_health:test_the_gallery_is_missing_in_production",
            "tests.web.test_addresses:test_a_header_of_anybody_else_changes_nothing",
        ),
    ),
    "A50": (
        "changing what was recorded",
        (
            "tests.audit.test_constraints:test_postgres_never_changes_an_event",
            "tests.portal.test_refusals:test_nobody_fills_the_audit_log_without_signing_in",
            "tests.audit.test_constraints:test_records_of_decisions_and_money_are_never_changed",
            "tests.audit.test_chain:test_it_names_the_event_that_is_missing",
            "tests.audit.test_chain:test_it_names_the_event_that_was_changed",
        ),
    ),
    "A52": (
        "messages put into the broker",
        (
            "tests.faults.test_two_workers:test_messages_of_an_unknown_task_or_shape_are_dropped_and_the_worker_goes_on",
        ),
    ),
    "A55": (
        "methods that an address does not take",
        (
            CONTRACT
            + "test_methods_that_an_address_does_not_take_are_405_whatever_a_header_says",
            MATRIX,
        ),
    ),
}


@pytest.mark.parametrize("attack", SHOWN_BY)
def test_every_test_that_is_named_exists(attack: str) -> None:
    words, tests = SHOWN_BY[attack]
    assert words
    assert tests
    for named in tests:
        module, _, name = named.partition(":")
        assert name.startswith("test_"), named
        assert callable(getattr(import_module(module), name, None)), named
