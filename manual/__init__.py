"""What people carry out: tasks with an assignee, a due date and a note of what was done."""
