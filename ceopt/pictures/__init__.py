"""Pictures by matplotlib, which is the extra ``plot``: what is shown comes in as plain texts and numbers.

No picture uses pyplot or changes a global setting: one that is given ``ax`` draws there, another makes a figure that
nothing else holds. A name or a level is drawn as it is, never read as mathematics.
"""
