from django.urls import path, re_path

from controlplane.console import audit, invitations, joining, key_changes, keys, members, operator, pages, session

urlpatterns = [
    path("api/v1/session", session.SessionApi.as_view()),
    path("api/v1/keys", keys.KeysApi.as_view()),
    path("api/v1/keys/<slug:key_id>", key_changes.KeyApi.as_view()),
    path("api/v1/keys/<slug:key_id>/rotate", key_changes.RotateKeyApi.as_view()),
    path("api/v1/keys/<slug:key_id>/revoke", keys.RevokeKeyApi.as_view()),
    path("api/v1/playground/key", keys.PlaygroundKeyApi.as_view()),
    path("api/v1/operator/tenants", operator.OperatorTenantsApi.as_view()),
    path("api/v1/members", members.MembersApi.as_view()),
    path("api/v1/members/leave", members.LeaveApi.as_view()),
    path("api/v1/members/<slug:member_id>", members.MemberApi.as_view()),
    path("api/v1/invitations", invitations.InvitationsApi.as_view()),
    path("api/v1/invitations/look", joining.LookAtInvitationApi.as_view()),
    path("api/v1/invitations/accept", joining.JoinApi.as_view()),
    path("api/v1/invitations/<slug:invitation_id>", invitations.InvitationApi.as_view()),
    path("api/v1/audit", audit.AuditApi.as_view()),
    path("api/v1/audit/export", audit.AuditExportApi.as_view()),
    path("api/v1/operator/audit", audit.OperatorAuditApi.as_view()),
    path("healthz", pages.health),
    # Everything else is a page of the console, but for what programs ask: they get 404 in JSON, not HTML.
    re_path(r"^(?!(?:api|v1|ws|static|assets)(?:/|$)).*$", pages.page),
]
