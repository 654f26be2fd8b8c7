"""Who decides a request, when, and how: seats, routes, reminders, one by one and in bulk."""
