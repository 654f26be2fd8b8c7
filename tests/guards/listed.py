"""Guards of rights, input, money, the policy and the record, each with the test that notices when it is off."""

from tests.guards.switching import Guard
from workloads.templates.library import BY_SLUG

CLOCK, TALK = "tests.approvals.test_escalation:", "tests.approvals.test_conversation:"
CONTRACT, DECIDING = "tests.portal.test_api_contract:", "tests.attacks.test_deciding:"
DOCUMENT, LENDING = "tests.policy.test_document:", "tests.accounts.test_delegation:"
POLICY, TASKS = "tests.approvals.test_policy_actions:", "tests.manual.test_tasks:"
FRESH, LISTS = "tests.accounts.test_freshness:", "tests.attacks.test_lists:"
ENDING, RENEWING = "tests.allocations.test_sweep:", "tests.approvals.test_renewing:"
D, NUMBERS = "tests.approvals.test_decisions:", "tests.attacks.test_numbers:"
IDENTITIES = "tests.accounts.test_identities:"
LEAVE = "tests.onboarding.test_leaving_rules:"
CHAIN, HOOKS = "tests.audit.test_chain:", "tests.connectors.test_webhooks:"
BRAKE = "tests.provisioning.test_brake:"
TOKEN_SCOPE = "tests.accounts.test_api_delegations:test_an_endpoint_names_the_changes_that_only_ask"
TOKEN_ENDS = (
    CONTRACT + "test_a_token_ends_when_it_is_revoked_expired_or_its_person_is_blocked"
)
USABLE = "return self.filter(revoked_at=None, suspended_by=None, expires_at__gt=now, user__is_active=True)"

WHO = [
    Guard(
        "accounts.teams:TeamScopedQuerySet.visible_to",
        'return self.filter(**{f"{self.team_path}__in": user.team_ids})',
        "return self",
        "tests.approvals.test_page_requests:test_a_stranger_sees_nothing_of_it",
    ),
    Guard(
        "accounts.authentication:SignedInWithScope.has_permission",
        "return bool(scope == ApiToken.Scope.WRITE)",
        "return True",
        TOKEN_SCOPE,
        {"scope": "read", "method": "POST", "action": "create", "may": False},
    ),
    Guard(
        "accounts.authentication:SignedInWithScope.has_permission",
        'return action is None or action in getattr(view, "asking", frozenset())',
        "return True",
        TOKEN_SCOPE,
        {"scope": "ask", "method": "POST", "action": "approve", "may": False},
    ),
    Guard(
        "accounts.tokens.models:ApiTokenQuerySet.usable",
        USABLE,
        USABLE.replace("revoked_at=None, ", ""),
        TOKEN_ENDS,
    ),
    Guard(
        "accounts.tokens.models:ApiTokenQuerySet.usable",
        USABLE,
        USABLE.replace("expires_at__gt=now, ", ""),
        TOKEN_ENDS,
    ),
    Guard(
        "accounts.tokens.models:ApiTokenQuerySet.usable",
        USABLE,
        USABLE.replace(", user__is_active=True", ""),
        TOKEN_ENDS,
    ),
    Guard(
        "accounts.authentication:_by_token",
        "token.user.is_blocked",
        "False",
        "tests.accounts.test_page_tokens:test_a_token_of_a_person_without_any_role_opens_nothing",
    ),
    Guard(
        "accounts.tokens.actions:_made",
        "owner.is_blocked or not owner.is_active",
        "False",
        "tests.accounts.test_page_tokens:test_no_token_is_made_for_somebody_whose_access_ends_at_this_moment",
    ),
    Guard(
        "accounts.tokens.actions:create_team_token",
        "scope not in TEAM_SCOPES",
        "False",
        "tests.accounts.test_team_tokens:test_none_may_ask_or_decide",
        {"scope": "ask"},
    ),
    Guard(
        "accounts.identities.actions:add_identity",
        "scope not in TEAM_SCOPES",
        "False",
        IDENTITIES
        + "test_what_names_no_application_or_would_ask_is_refused_at_its_field",
        {"fields": {"scope": "ask"}, "field": "scope", "code": "not_for_a_team"},
    ),
    Guard(
        "accounts.identities.actions:check_may_add",
        "not user.leads(team)",
        "False",
        IDENTITIES + "test_members_and_other_leads_add_see_and_remove_none",
    ),
    Guard(
        "accounts.identities.models:IdentityQuerySet.removable_by",
        "return self.filter(team__in=led)",
        "return self",
        IDENTITIES + "test_members_and_other_leads_add_see_and_remove_none",
    ),
    Guard(
        "accounts.identities.models:IdentityQuerySet.live",
        "return self.filter(removed_at=None)",
        "return self",
        IDENTITIES + "test_a_team_that_has_left_has_none",
    ),
    Guard(
        "accounts.authentication:_is_of",
        "return ids == (claims.oid, claims.client_id)",
        "return True",
        IDENTITIES + "test_both_ids_are_held_against_the_token",
        {"wrong": "client_id"},
    ),
    Guard(
        "accounts.directory.freshness:check",
        "if known is None or known < now - CONFIRMED_FOR:",
        "if False:",
        FRESH + "test_who_is_confirmed_passes_until_five_minutes_are_over",
    ),
    Guard(
        "accounts.directory.freshness:check",
        "if role is None or not is_active:",
        "if False:",
        D + "test_a_lead_whose_account_was_disabled_decides_nothing",
    ),
    Guard(
        "accounts.stand_ins.actions:delegate",
        "if not people.decides(giver, groups=groups):",
        "if False:",
        LENDING + "test_who_decides_nothing_has_no_seat_to_lend",
    ),
    Guard(
        "accounts.stand_ins.actions:delegate",
        "if to.pk == giver.pk:",
        "if False:",
        LENDING + "test_nobody_stands_in_for_themselves",
    ),
    Guard(
        "accounts.stand_ins.actions:end_delegation",
        "if by.pk not in (delegation.giver_id, delegation.to_id):",
        "if False:",
        LENDING + "test_nobody_else_ends_it",
    ),
    Guard(
        "accounts.stand_ins.models:DelegationQuerySet.in_force",
        "starts_at__lte=now, ",
        "",
        LENDING + "test_the_seat_is_lent_from_one_moment_until_another",
    ),
    Guard(
        "accounts.stand_ins.models:DelegationQuerySet.open",
        "ended_at=None, ",
        "",
        LENDING + "test_it_ends_at_once_when_either_ends_it_and_only_once",
    ),
    Guard(
        "approvals.decisions.deciders:_lenders",
        "giver.pk != request.requester_id",
        "True",
        CLOCK + "test_who_stands_in_for_the_requester_does_not_decide",
    ),
    Guard(
        "approvals.decisions.actions:_vote",
        "if has_voted(request, by, seat_of):",
        "if False:",
        DECIDING + "test_a_stand_in_and_the_giver_are_one_voice",
    ),
    Guard(
        "manual.actions:_locked",
        "if not by.may(Permission.DECIDE_AS_PLATFORM):",
        "if False:",
        TASKS + "test_only_platform_leads_carry_out_and_only_to_them_it_is_given",
    ),
    Guard(
        "manual.actions:take",
        "not to.may(Permission.DECIDE_AS_PLATFORM)",
        "False",
        TASKS + "test_only_platform_leads_carry_out_and_only_to_them_it_is_given",
    ),
    Guard(
        "approvals.conversation.actions:_check_turn",
        "if request.requester_id != by.pk:",
        "if False:",
        TALK + "test_only_who_asked_changes_it_and_only_what_they_saw",
    ),
    Guard(
        "approvals.conversation.actions:comment",
        "Request.objects.open_to(by, now)",
        "Request.objects",
        TALK + "test_strangers_say_nothing_and_nobody_says_nothing",
    ),
    Guard(
        "catalogue.actions:change",
        "if not by.may(Permission.MANAGE_CATALOGUE):",
        "if False:",
        "tests.catalogue.test_actions:test_nobody_but_platform_leads_changes_it",
    ),
]
INPUT = [
    Guard(
        "web.strict:StrictSerializer.to_internal_value",
        "if unknown:",
        "if False:",
        "tests.approvals.test_api_requests:test_fields_that_are_not_for_the_caller_are_refused_by_name",
    ),
    Guard(
        "web.fields:StrictForm.clean",
        "if unknown:",
        "if False:",
        "tests.approvals.test_page_request_new:test_it_refuses_fields_that_nobody_asked_for",
    ),
    Guard(
        "web.fields:AmountField.to_python",
        "not AMOUNT.fullmatch(str(value).strip())",
        "False",
        NUMBERS + "test_prices_limits_and_money_take_no_number_that_is_none",
        {"value": "８"},
    ),
    Guard(
        "web.fields:WholeNumberField.to_python",
        "not DIGITS.fullmatch(str(value)) or ",
        "",
        NUMBERS + "test_a_digit_of_another_script_asks_for_nothing",
    ),
    Guard(
        "approvals.versions:seen_version",
        'if given in ("", "*"):',
        "if False:",
        "tests.approvals.test_api_decisions:test_a_decision_says_which_version_was_seen",
    ),
    Guard(
        "accounts.replay:earlier_answer",
        "if row.body_hash != _digest(request):",
        "if False:",
        "tests.portal.test_api_idempotency:test_the_same_key_with_another_body_is_refused",
    ),
    Guard(
        "accounts.replay:_place",
        "if not KEY.fullmatch(key):",
        "if False:",
        "tests.portal.test_api_idempotency:test_a_call_that_changes_something_needs_a_usable_key",
    ),
    Guard(
        "approvals.requests.actions:check_grantable",
        "if not wanted.setting.enabled:",
        "if False:",
        "tests.catalogue.test_actions:test_what_is_switched_off_cannot_be_asked_for",
    ),
    Guard(
        "approvals.requests.actions:check_answer",
        "if blocking is not None:",
        "if False:",
        TALK + "test_a_change_that_changes_nothing_or_nobody_could_approve_is_refused",
    ),
    Guard(
        "approvals.requests.actions:check_answer",
        "if answer_.outcome is Outcome.PEOPLE and len(reason.strip()) < LEAST_REASON:",
        "if False:",
        TALK + "test_a_change_that_changes_nothing_or_nobody_could_approve_is_refused",
    ),
    Guard(
        "approvals.conversation.actions:_check_turn",
        "if request.version != expected_version:",
        "if False:",
        TALK + "test_only_who_asked_changes_it_and_only_what_they_saw",
    ),
    Guard(
        "manual.actions:_locked",
        "task.version != expected_version",
        "False",
        TASKS + "test_two_who_take_it_at_once_do_not_take_it_from_each_other",
    ),
    Guard(
        "manual.actions:finish",
        "if not note.strip():",
        "if False:",
        TASKS + "test_a_task_ends_once_and_with_a_word",
    ),
    Guard(
        "manual.actions:_locked",
        "if task.is_over:",
        "if False:",
        TASKS + "test_a_task_ends_once_and_with_a_word",
    ),
    Guard(
        "approvals.decisions.bulk:_decide",
        "if not seen:",
        "if False:",
        "tests.approvals.test_bulk:test_one_that_is_refused_stops_no_other",
    ),
    Guard(
        "portal.http.middleware:StorableMiddleware.__call__",
        '"%00" in request.META.get("QUERY_STRING", "")',
        "False",
        LISTS + "test_a_zero_byte_in_the_address_of_a_page_is_refused",
    ),
]
POLICIES = [
    Guard(
        "web.documents:parse",
        'if len(text.encode("utf-8", "surrogatepass")) > LARGEST:',
        "if False:",
        DOCUMENT + "test_a_file_of_a_megabyte_is_refused_before_it_is_read",
    ),
    Guard(
        "web.documents:_look_over",
        "if isinstance(token, yaml.AliasToken | yaml.AnchorToken):",
        "if False:",
        "tests.attacks.test_texts:test_an_alias_is_refused_even_where_it_would_be_a_policy",
    ),
    Guard(
        "policy.document:policy_from",
        "contradictions := tuple(contradictions_in(policy))",
        "contradictions := ()",
        DOCUMENT + "test_what_cannot_all_be_meant_is_refused",
        {"name": "longer automatic than possible"},
    ),
    Guard(
        "approvals.policy_desk.actions:_activate",
        "if found.author_id == by.pk:",
        "if False:",
        POLICY + "test_its_author_never_activates_it",
    ),
    Guard(
        "approvals.policy_desk.actions:_activate",
        "freshness.check(by, now=now)",
        "pass",
        POLICY + "test_who_was_blocked_since_the_page_opened_activates_nothing",
    ),
    Guard(
        "approvals.policy_desk.actions:_own",
        "if found.author_id != by.pk:",
        "if False:",
        POLICY
        + "test_a_platform_lead_cannot_change_somebodys_draft_and_then_activate_it",
    ),
    Guard(
        "approvals.policy_desk.actions:_check_version",
        "if found.version != expected:",
        "if False:",
        POLICY + "test_a_version_that_was_not_looked_at_is_not_activated",
    ),
    Guard(
        "approvals.policy_desk.actions:_check_changes",
        "if found.base_id not in (newest.pk, current.pk):",
        "if False:",
        POLICY + "test_of_two_drafts_of_one_base_the_second_is_taken_over_first",
    ),
    Guard(
        "approvals.policy_desk.actions:_check_activation",
        "warned and",
        "False and",
        POLICY + "test_a_policy_without_bounds_needs_a_tick_that_the_audit_log_keeps",
    ),
    Guard(
        "approvals.policy_desk.actions:_check_activation",
        "if active_from < now:",
        "if False:",
        POLICY + "test_a_policy_may_come_into_force_later_but_never_before_now",
    ),
    Guard(
        "approvals.policy_desk.actions:_check_order",
        "if found.base_id == newest.pk and active_from < newest.active_from:",
        "if False:",
        POLICY + "test_what_changes_a_policy_that_comes_later_never_comes_before_it",
    ),
]
REST = [
    Guard(
        "fleet.models:Flavor.take",
        ', gpus_total__gte=F("allocated") + gpus',
        "",
        NUMBERS + "test_no_more_gpus_are_taken_than_there_are",
    ),
    Guard(
        "allocations.budgets.balances:reserve",
        "Q(gpu_hours_limit=None) | Q(gpu_hours_limit__gte=then_hours),",
        "",
        "tests.allocations.test_budgets:test_gpu_hours_have_a_limit_of_their_own",
    ),
    Guard(
        "audit.chain:verify",
        "if link.seq != after + 1:",
        "if False:",
        CHAIN + "test_it_names_the_event_that_is_missing",
        {"missing": 2},
    ),
    Guard(
        "audit.chain:verify",
        "if link.previous != previous:",
        "if False:",
        CHAIN + "test_a_changed_event_with_a_new_hash_breaks_the_one_after_it",
    ),
    Guard(
        "audit.chain:verify",
        "if digest(seq=link.seq, body=link.body, previous=previous) != link.hash:",
        "if False:",
        CHAIN + "test_it_names_the_event_that_was_changed",
        {"place": 2},
    ),
    Guard(
        "portal.http.middleware:_is_refused",
        "response.status_code in REFUSED_WHEN_SAID",
        "False",
        DECIDING + "test_a_decision_that_waits_for_the_directory_leaves_an_event_too",
    ),
    Guard(
        "approvals.decisions.bulk:_refused",
        "refuse(",
        "dict(",
        DECIDING + "test_a_refused_decision_leaves_an_event_by_every_door",
    ),
    Guard(
        "notices.actions:_check",
        "if not A_LINK.match(link):",
        "if False:",
        "tests.notices.test_tell:test_a_notice_leads_nowhere_but_into_the_portal",
        {"link": "//evil.example"},
    ),
    Guard(
        "notices.message:one_line",
        'BREAKS.sub(" ", plain).strip()',
        "plain.strip()",
        "tests.notices.test_rendering:test_a_subject_has_no_line_break",
    ),
    Guard(
        "connectors.webhooks:Webhooks._address",
        "refused(address) for address",
        "False for address",
        HOOKS + "test_a_name_is_refused_when_any_of_its_addresses_is_an_inner_one",
    ),
    Guard(
        "connectors.webhooks:Webhooks._address",
        "target.port != HTTPS and",
        "False and",
        HOOKS + "test_only_the_port_of_https_is_called",
        {"port": 22},
    ),
    Guard(
        "connectors.webhooks:Webhooks._address",
        "self.only is not None and",
        "False and",
        HOOKS + "test_where_hosts_are_named_no_other_is_called",
    ),
    Guard(
        "connectors.webhooks:read",
        'if parts.scheme != "https":',
        "if False:",
        HOOKS + "test_it_reads_nothing_but_an_https_address_of_a_host_and_a_path",
        {"url": "http://hooks.slack.com/x"},
    ),
]
ENDS = [
    Guard(
        "allocations.ends.sweep:sweep",
        "if too_many(",
        "if False and (",
        ENDING + "test_a_clock_that_jumps_ends_nothing_and_leads_are_told_once",
    ),
    Guard(
        "allocations.ends.sweep:_answer",
        "if not by.may(Permission.MANAGE_BUDGETS):",
        "if False:",
        ENDING + "test_only_a_platform_lead_lets_them_end_and_once",
    ),
    Guard(
        "allocations.ends.sweep:_answer",
        "if not mine.update(",
        "if not dict(",
        ENDING + "test_only_a_platform_lead_lets_them_end_and_once",
    ),
    Guard(
        "allocations.ends.reminders:remind",
        " or row.until <= now",
        "",
        ENDING + "test_nobody_is_reminded_of_what_is_over",
    ),
    Guard(
        "allocations.actions:hand_over",
        "if going < allocation.gpus:",
        "if False:",
        RENEWING + "test_fewer_are_kept_longer_and_the_others_until_the_old_end",
    ),
    Guard(
        "approvals.renewals.renewing:check",
        "if held is None:",
        "if False:",
        RENEWING + "test_of_a_renewal_and_an_end_one_comes_first",
    ),
    Guard(
        "approvals.renewals.renewing:check",
        "if waiting is not None:",
        "if False:",
        RENEWING + "test_one_renewal_waits_at_a_time_whoever_writes",
    ),
    Guard(
        "approvals.renewals.renewing:_check_later",
        "if until < held.until + SHORTEST:",
        "if False:",
        RENEWING + "test_an_earlier_end_and_strangers_are_refused",
    ),
]
LEAVING = [
    Guard(
        "offboarding.actions:ask",
        "if not may_ask(team, by):",
        "if False:",
        LEAVE + "test_who_may_ask_confirm_and_restore",
    ),
    Guard(
        "offboarding.actions:confirm",
        "if not by.may(Permission.REMOVE_TEAMS):",
        "if False:",
        LEAVE + "test_who_may_ask_confirm_and_restore",
    ),
    Guard(
        "offboarding.actions:_check_second_person",
        "if found.needs_second and found.asked_by_id == by.pk:",
        "if False:",
        LEAVE + "test_for_production_another_platform_lead_confirms",
    ),
    Guard(
        "offboarding.actions:confirm",
        "if seen(found) != seen_content:",
        "if False:",
        LEAVE + "test_a_preview_that_has_changed_is_not_confirmed",
    ),
    Guard(
        "offboarding.actions:confirm",
        "if name.strip() != found.team.name:",
        "if False:",
        LEAVE + "test_the_name_is_typed_as_it_is_written",
        {"typed": "vision"},
    ),
    Guard(
        "offboarding.actions:_check_protection",
        "if kept:",
        "if False:",
        LEAVE + "test_what_is_protected_is_not_confirmed",
    ),
    Guard(
        "offboarding.plan:held_back_of",
        "if len(fresh) > most_at_once(present)",
        "if False",
        "tests.offboarding.test_plan:test_too_many_at_once_wait_for_a_person",
    ),
    Guard(
        "provisioning.leaving:protect",
        "if not by.may(Permission.REMOVE_TEAMS):",
        "if False:",
        LEAVE + "test_only_platform_leads_take_the_protection_off",
    ),
    Guard(
        "provisioning.leaving:announce",
        "if tenancy.is_protected:",
        "if False:",
        LEAVE + "test_only_platform_leads_take_the_protection_off",
    ),
    Guard(
        "provisioning.leaving:remove",
        "kept_until > now",
        "False",
        LEAVE + "test_before_its_date_nothing_is_drained_and_nothing_deleted",
    ),
    Guard(
        "provisioning.leaving:drain",
        "tenancy.leaves_at > now",
        "False",
        LEAVE + "test_a_clock_that_is_wrong_drains_nothing",
    ),
    Guard(
        "provisioning.removing:is_of",
        "return is_ours(live) and owner",
        "return owner",
        "tests.provisioning.test_leaving:test_only_both_marks_make_an_object_ours",
        {
            "labels": {
                "quartermaster.io/tenancy": "7",
                "quartermaster.io/installation": "b2",
            }
        },
    ),
    Guard(
        "provisioning.removing:is_of",
        " and owner(spec).items() <= marks.items()",
        "",
        "tests.provisioning.test_leaving:test_only_both_marks_make_an_object_ours",
        {"labels": {"app.kubernetes.io/managed-by": "quartermaster"}},
    ),
    Guard(
        "allocations.actions:_place",
        "if not locked.is_here:",
        "if False:",
        LEAVE + "test_nothing_new_is_issued_where_a_team_leaves",
    ),
    Guard(
        "reconciling.lease:Lease.check",
        "if not self.renew(now=now):",
        "if False:",
        "tests.provisioning.test_throttle:test_who_lost_its_lease_is_told_so_before_its_next_write",
    ),
    Guard(
        "reconciling.slots:free_slot",
        "if len(live) >= limit:",
        "if False:",
        "tests.provisioning.test_throttle:test_one_cluster_takes_no_place_from_another",
    ),
    Guard(
        "provisioning.clusters.kueue:check",
        "if releases.is_older(version, LEAST):",
        "if False:",
        "tests.provisioning.test_kueue:test_what_is_too_old_is_refused_with_what_is_needed",
        {"version": "v0.15.4"},
    ),
    Guard(
        "provisioning.clusters.volcano:check",
        "if releases.is_older(version, LEAST):",
        "if False:",
        "tests.provisioning.test_volcano:test_what_is_too_old_is_refused_with_what_is_needed",
        {"version": "v1.8.2"},
    ),
]
DRIFT = [
    Guard(
        "provisioning.drift.brake:too_many",
        "if drifted <= most(there):",
        "if True:",
        BRAKE + "test_up_to_ten_are_repaired_and_one_more_stops_everything",
    ),
    Guard(
        "provisioning.drift.brake:_stop",
        "filter(pk=cluster.pk, braked_at=None)",
        "filter(pk=cluster.pk)",
        BRAKE + "test_it_is_set_and_told_once",
    ),
    Guard(
        "provisioning.drift.reconcile:_decide",
        "if not stopped and row.is_open",
        "if row.is_open",
        BRAKE + "test_nothing_is_written_while_it_is_on",
    ),
    Guard(
        "provisioning.drift.reconcile:_may",
        "cluster.on_drift == Cluster.OnDrift.REPAIR and ",
        "",
        BRAKE + "test_asking_means_no_write",
    ),
    Guard(
        "provisioning.drift.reconcile:_may",
        "not row.contested",
        "True",
        BRAKE + "test_what_somebody_fights_for_is_not_written",
    ),
    Guard(
        "provisioning.desired.plan:_step",
        "if not is_ours(live) or _is_anothers(live, manifest):",
        "if False:",
        BRAKE + "test_what_is_not_ours_is_never_written",
    ),
    Guard(
        "provisioning.drift.adopting:_refusal",
        "if not _is_adoptable(kind, path):",
        "if False:",
        "tests.provisioning.test_drift_pages:test_the_api_lists_and_does_the_same",
    ),
    Guard(
        "provisioning.drift.actions:_locked",
        "if not by.may(Permission.MANAGE_CLUSTERS):",
        "if False:",
        "tests.provisioning.test_drift_pages:test_the_api_lists_and_does_the_same",
    ),
]
FILES, ADDRESSES = "tests.provisioning.test_repository:", "tests.connectors.test_git:"
BY_GIT = [
    Guard(
        "provisioning.git.repository:_put",
        "found is not None and",
        "False and",
        FILES + "test_another_tenancys_folder_or_object_is_not_ours",
    ),
    Guard(
        "provisioning.git.repository:_folder_changes",
        "before is not None and",
        "False and",
        FILES + "test_what_lies_in_our_place_and_is_not_ours_is_refused_in_words",
        {"path": "kustomization.yaml"},
    ),
    Guard(
        "provisioning.git.repository:_folder_changes",
        'if one.get("kind") in NEVER_PRUNED',
        "if False",
        FILES + "test_what_is_no_longer_wanted_goes_but_never_a_namespace_or_a_claim",
    ),
    Guard(
        "provisioning.git.repository:tenancy_removal",
        "if not _is_marked(index, _note(owner)):",
        "if False:",
        FILES + "test_a_folder_goes_only_for_its_own_tenancy",
    ),
    Guard(
        "provisioning.desired.gitops:refuse_kept_by_others",
        "if who:",
        "if False:",
        "tests.provisioning.test_gitops:test_the_first_write_to_it_is_refused_in_words",
        {"verb": "update"},
    ),
    Guard(
        "connectors.git_address:read",
        'if parts.password is not None or (parts.scheme == "https" and',
        "if (False and",
        ADDRESSES + "test_an_address_is_https_ssh_or_in_the_folder",
        {"url": "https://user:secret@github.com/a/b"},
    ),
    Guard(
        "connectors.git_address:_local",
        "if path == inside or inside not in path.parents:",
        "if False:",
        ADDRESSES + "test_an_address_is_https_ssh_or_in_the_folder",
        {"url": "/etc/passwd"},
    ),
    Guard(
        "connectors.pinned:checked_address",
        "if any(",
        "if False and any(",
        ADDRESSES + "test_no_inner_address_is_called",
        {"scheme": "https://", "host": "127.0.0.1"},
    ),
]
WHY_QUEUES, PARAMETERS = (
    "tests.workloads.test_explaining_queues:",
    "tests.workloads.test_template_parameters:",
)
TEMPLATES = "tests.workloads.test_templates:"
VARIABLES = "tests.provisioning.test_variables:"
RUNS = [
    Guard(
        "workloads.reasons.words:display_name",
        "if not facts.viewer.may_see(key):",
        "if False:",
        WHY_QUEUES + "test_whoever_it_made_room_for_is_named_to_those_who_may_see_it",
        {"reason": "InClusterQueue", "words": "which ranks higher in your queue"},
    ),
    Guard(
        "workloads.reasons.queues:_blocked",
        "if facts.viewer.may_see(never.key):",
        "if True:",
        WHY_QUEUES
        + "test_a_job_that_never_fits_at_the_head_of_a_strict_queue_stops_everybody",
    ),
    Guard(
        "workloads.reasons.words:redacted",
        'return PRIVATE.sub("", message)',
        "return message",
        "tests.workloads.test_explaining_messages:test_what_identifies_another_teams_job_is_not_quoted",
    ),
    Guard(
        "workloads.estimating:History.estimate",
        "if samples < MIN_SAMPLES:",
        "if samples < 1:",
        "tests.workloads.test_estimating:test_below_five_samples_there_is_none",
    ),
    Guard(
        "provisioning.desired.variables:is_among",
        "name == word or",
        "False and",
        VARIABLES + "test_variables_that_a_run_cannot_set",
        {"name": "LD_PRELOAD"},
    ),
    Guard(
        "workloads.templates.parameters:refused_source",
        "or _is_address(host):",
        ":",
        PARAMETERS + "test_sources_that_are_refused",
        {"url": "https://169.254.169.254/x", "revision": "main"},
    ),
    Guard(
        "workloads.templates.parameters:refused_script",
        "if size > MAX_SCRIPT_BYTES:",
        "if False:",
        PARAMETERS + "test_a_script_has_a_limit_of_size_and_is_text",
    ),
    Guard(
        "workloads.templates.library:Template.refused",
        'Misfit("variables", refused_variables([*run.variables]))',
        'Misfit("variables", "")',
        TEMPLATES + "test_what_goes_with_no_template_is_refused_with_a_sentence",
        {
            "change": {"variables": {"LD_PRELOAD": "x"}},
            "field": "variables",
            "words": "LD_PRELOAD",
        },
    ),
    Guard(
        "workloads.templates.pods:literal",
        'return word.replace("$(", "$$(")',
        "return word",
        TEMPLATES + "test_what_people_write_stays_text",
        {"template": BY_SLUG["single-node"]},
    ),
]
CLIENT = [
    Guard(
        "qm.configuration:checked",
        'parts.scheme == "http" and',
        "False and",
        "tests.qm.test_configuration:test_plain_http_is_for_loopback_alone",
        {"url": "http://10.0.0.1"},
    ),
    Guard(
        "qm.configuration:access",
        'file.get("url") == url',
        "True",
        "tests.qm.test_configuration:test_a_stored_token_is_of_no_use_elsewhere",
    ),
]
SCRAPED = [
    Guard(
        "portal.metrics.views:_is_theirs",
        "constant_time_compare(given, token)",
        "True",
        "tests.portal.test_metrics_access:test_any_other_is_asked_for_it",
        {"header": "Bearer x"},
    ),
    Guard(
        "portal.metrics.views:metrics",
        "if token is None:",
        "if False:",
        "tests.portal.test_metrics_access:test_without_the_setting_there_is_no_such_address",
    ),
]
MORE = [
    *WHO,
    *INPUT,
    *POLICIES,
    *REST,
    *DRIFT,
    *ENDS,
    *LEAVING,
    *BY_GIT,
    *RUNS,
    *CLIENT,
    *SCRAPED,
]
