"""How many layers D hops need, and what each layer does."""

from hopscope.facts import chain_of_facts, parse_facts
from hopscope.plots.depth import grid
from hopscope.theory import depths, flow, reach


def main() -> None:
    for hops in (1, 3, 5, 7, 10_000):
        print(depths(hops))
    print("hops that 1 … 6 causal layers can follow:", [reach(layers) for layers in range(1, 7)])

    for graph in (chain_of_facts(5), parse_facts(["a->x", "a->y", "x,y->z"])):
        found = flow(graph, heads=1)
        target = graph.facts[-1].value
        print(f"\n{target} is at the query after {found.minimum[target]} layers:")
        print(grid(found, found.schedule(target)))


if __name__ == "__main__":
    main()
