"""The embedded sites: server-rendered pages, seeded data, tasks and scripted experts.

Every site is a folder with the same rooms: ``site`` (all of it put together), ``data`` and ``state``, ``access``,
``*_pages`` with their ``templates``, ``words``, ``sampling``, ``checks``, ``skills`` and ``tasks``, where a template
is one class (``sites.task_template``). ``sites.across`` has the templates over several sites. The modules beside the
folders belong to all sites.
"""
