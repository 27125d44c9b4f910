"""Reports: one page of HTML that needs nothing else, of a person's answers or of many people's.

What stands in a report is said beside each result, as plain texts and pictures; the page alone is made here.
"""
