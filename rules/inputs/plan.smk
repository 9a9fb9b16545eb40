# What makes a finished job run again: each has `plan=planned(its name)` among its inputs.
from projected_grpo import plan, records
from snakemake.io import apply_wildcards


def asked_values(items, wildcards):
    """Yield (name, value) of a rule's inputs, outputs or params for these wildcards, as Snakemake evaluates them."""
    for name, item in items._allitems():
        if name == "plan":
            continue
        if callable(item):
            yield name, item(wildcards)
        elif isinstance(item, str):
            yield name, apply_wildcards(item, wildcards)
        elif isinstance(item, list):
            yield name, [apply_wildcards(each, wildcards) if isinstance(each, str) else each for each in item]
        else:
            yield name, item


def asked_files(items, wildcards):
    """Return the paths among a rule's inputs or outputs, in order."""
    values = (value for _, value in asked_values(items, wildcards))
    paths = (path for value in values for path in ([value] if isinstance(value, str) else value))
    # A function may name another rule's output.
    return [apply_wildcards(str(path), wildcards) for path in paths]


def as_recorded(settings, outputs):
    """The settings with a pair set where it lay when the outputs were made: what it holds decides, not its folder."""
    if digest := settings.get("pairs_digest"):
        with suppress(records.Unusable):
            known = records.read(records.record_path(outputs[0], RESULTS))["settings"]
            if known.get("pairs_digest") == digest:
                return settings | {"pairs": known["pairs"]}
    return settings


def planned(name):
    """Input function of a rule, by its name: a mark newer than its outputs where their record is not what is asked for."""

    registered = workflow.modifier.modify_rulename(name)  # as a module it has the name that the user gives

    def changed(wildcards):
        declared = workflow.get_rule(registered)
        outputs = asked_files(declared.output, wildcards)
        if not os.path.exists(outputs[0]):
            return []
        settings = dict(asked_values(declared.params, wildcards))
        settings.pop("sources", None)  # they are in the code hash
        asked = plan.Asked(
            outputs=outputs,
            inputs=asked_files(declared.input, wildcards),
            code=settings.pop("code"),
            settings=records.canonical(as_recorded(settings, outputs), RESULTS),
            benchmark=apply_wildcards(declared.benchmark, wildcards) if declared.benchmark else None,
        )
        why = plan.reason(asked, RESULTS)
        return [plan.mark(why)] if why else []

    return changed
