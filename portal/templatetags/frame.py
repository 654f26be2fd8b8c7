"""What the frame of every page is put together with."""

from django import template

register = template.Library()


@register.simple_block_tag
def rendered_first(content: str) -> str:
    """`{% rendered_first as main %}…{% endrendered_first %}`: what stands further down and is rendered before it."""
    return content
