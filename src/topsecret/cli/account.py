"""``topsecret account``: what releases cost, by every bound that is valid for them."""

from __future__ import annotations

from typing import Annotated

import typer

from topsecret.cli.app import app

account = typer.Typer(
    help="Add up what several answers cost, by every known bound.", no_args_is_help=True
)
app.add_typer(account, name="account")


@account.command()
def picks(
    number: Annotated[int, typer.Argument(help="How many picks.")],
    epsilon: Annotated[float, typer.Argument(help="Epsilon of one pick.")],
    delta: Annotated[
        float, typer.Option(help="Delta, a probability added to what epsilon allows.")
    ] = 1e-6,
    tests: Annotated[int, typer.Option(help="Gaussian tests beside the picks.")] = 0,
    sigma: Annotated[float, typer.Option(help="Noise of each test, in people.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Every bound on the cost of picks (exponential mechanism), the smallest marked.

    topsecret account picks 50 0.1

    topsecret account picks 600 0.0513 --tests 600 --sigma 60 --delta 4e-7
    """
    import json as json_text

    from topsecret.accounting import gaussian
    from topsecret.accounting import picks as steps
    from topsecret.errors import InvalidParameter

    if number < 0 or tests < 0:
        raise InvalidParameter(f"{min(number, tests)} steps are too few; give 0 or more")
    if not sigma > 0:
        raise InvalidParameter(f"sigma={sigma} must be above 0; raise sigma")
    loss = steps(number, epsilon) + tests * gaussian(1 / sigma**2)
    explained = loss.explain(delta)
    if json:
        bounds = [
            {"bound": bound.name, "epsilon": bound.epsilon, "source": bound.source}
            for bound in explained.bounds
        ]
        record = {"delta": delta, "epsilon": explained.epsilon, "bounds": bounds}
        typer.echo(json_text.dumps(record, indent=2, ensure_ascii=False))
    else:
        typer.echo(str(explained))


@account.command("zhu-wang")
def zhu_wang(
    adjacency: Annotated[
        str | None,
        typer.Option(help="add-remove or replace.", show_default="both"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Every charge of the multi-label PATE run of Zhu & Wang 2022, Table 2.

    600 queries over 40 labels at delta = 1e-6; the paper reports epsilon = 3.6.

    topsecret account zhu-wang
    """
    import json as json_text
    from dataclasses import asdict

    from topsecret.accounting.zhu_wang import relations, table

    wanted = relations(adjacency)
    tables = [table(relation) for relation in wanted]
    if json:
        typer.echo(json_text.dumps([asdict(found) for found in tables], indent=2))
    else:
        typer.echo("\n\n".join(str(found) for found in tables))
