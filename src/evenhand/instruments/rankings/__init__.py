"""Rankings: several candidates for one job, and who is ranked first. Here the audit of GPT by
Bloomberg (2024) is scored from its recorded answers, and so are the user's rankings."""
