"""What people read: tables, the terminal, and a report in HTML."""
