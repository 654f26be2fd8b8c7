"""The recurring parts of every page, one tag each; docs/design-system.md shows each with an example."""

from django import template

from ui import controls, frames, numbers, stories, tables, words

register = template.Library()
for _kind in (words, numbers, stories, controls, tables, frames):
    register.tags.update(_kind.register.tags)
    register.filters.update(_kind.register.filters)
