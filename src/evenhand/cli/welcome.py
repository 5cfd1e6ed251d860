"""What `evenhand` says when nothing else is typed: the questions it answers, and how to begin."""

from pathlib import Path
from urllib.parse import urlsplit

from evenhand.core import environment
from evenhand.core.version import __version__

_SCREEN = """\
evenhand {version}: is a model biased, against whom, how sure, and what helps?

  Try without a model  evenhand demo
  Is it biased?        evenhand measure bbq --out runs/now
  Does a remedy help?  evenhand compare runs/now runs/after
  Which remedy?        evenhand frontier --out runs/front
  A page to hand over  evenhand report runs/now runs/after --out report.html
  Trust this judge?    evenhand audit judge --out runs/judge
  Trust the numbers?   evenhand self-test
  What will it cost?   any of these with --dry-run (asks nothing)
  Repair my answers    evenhand mitigate prompts.jsonl --out runs/first
  … on their way out   evenhand gateway --upstream URL

Start:  evenhand doctor        endpoint: {endpoint}

Also: answer  methods  plan  runs  scorers  overcorrection  debate  pairs
      train  serve-local  conformance  reliability  rate  harms
      judge-scenarios  reproduce  gate  view  pack  audit  swap  new  import
      export  watch  screen
All commands: evenhand --help"""


def welcome() -> str:
    return _SCREEN.format(version=__version__, endpoint=_endpoint())


def _endpoint() -> str:
    """Where calls would go. A password or a key within the address is not shown."""
    url = environment.base_url()
    if url:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if Path("evenhand.toml").exists():
        return "as evenhand.toml says"
    return "none set (EVENHAND_BASE_URL)"
