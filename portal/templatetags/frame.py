"""What the frame of every page is put together with."""

from django import template

register = template.Library()


@register.simple_block_tag
def earlier(content: str) -> str:
    """`{% earlier as main %}…{% endearlier %}`: what stands further down, but is made before what stands above it."""
    return content
