"""The development container of a profile: as a file, and as a repository that VS Code clones."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from notebooks.profile_desk.kept import offered
from notebooks.profiles.devcontainers import devcontainer
from web.downloads import text_file
from workloads.choosing import repositories


@require_safe
def profile_devcontainer(request: HttpRequest, slug: str) -> HttpResponse:
    """The `devcontainer.json` of a profile that people can choose, as a file."""
    visitor(request)
    found = next((one for one in offered() if one.document.slug == slug), None)
    if found is None:
        raise Http404
    return text_file(
        devcontainer(found.document),
        name="devcontainer.json",
        content_type="application/json",
    )


@require_safe
def devcontainer_repository(
    request: HttpRequest, token: str, slug: str, path: str
) -> HttpResponse:
    """A file of a development container's repository, for Git: the signature in the address opens it, for a day."""
    content = repositories.read(token, slug, path)
    if content is None:
        raise Http404
    return HttpResponse(content, content_type="application/octet-stream")
