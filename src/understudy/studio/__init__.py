"""The studio: from a table to a release in a browser, for people who do not type commands.

A local web page that is rendered on the server. It sees what the public names of `understudy` give and nothing else (an
import wall, and a test of every name it uses), so it cannot tell more than the command line does. What keeps strangers
and other web pages out is in `guard.py`; runs are processes of their own (`runs.py`), so neither closing the browser
nor stopping the server ends one.

Privacy: nothing here reads a row of the private table. Its header is read by `Schema.draft`, its rows by `synthesize`,
which charges the ledger first, and by `evaluate`, whose report is confidential and is shown as such, apart from all
releases. Pages, addresses and messages hold public facts: names, plans, noisy answers, synthetic rows.
"""
