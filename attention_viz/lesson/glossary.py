"""The words of the subject, one sentence each: what a reader sees when resting on a term."""

__all__ = ["TERMS"]

TERMS: dict[str, str] = {
    "ablated": "Silenced on purpose, to see what changes without it.",
    "attention": "A way to make each word's vector anew as a mixture of all vectors, in shares that add up to 1.",
    "causal mask": "A mask under which nobody looks at what comes later, as in models that write word by word.",
    "convex hull": "The shape of a rubber band around some points: all their mixtures, in shares that add up to 1.",
    "cross-attention": "Attention between two texts: queries from what is said, keys and values from what was read.",
    "dot product": "Two vectors multiplied number by number and added up: large where both point the same way.",
    "embedding": "The list of numbers that stands for a token.",
    "entropy": "How evenly shares are spread: 0 where one has all, and largest where all are equal.",
    "flash attention": "A way to compute attention block by block, so that the weights of all pairs are never stored.",
    "gradient": "How much a result changes with what it is made of; training follows it, and near 0 it stands still.",
    "head": "One of several attentions that work side by side in a layer, each with its own queries, keys and values.",
    "key": "What a token advertises: a vector that queries are compared with.",
    "layer": "One round of attention and what follows it; a model stacks several.",
    "mask": "A table of who may look at whom.",
    "output": "What attention makes of a token: the values of those it looks at, mixed by their weights.",
    "padding": "What fills up the shorter sentences of a batch to the length of the longest.",
    "query": "What a token asks for: a vector that is compared with every key.",
    "saturation": "Where a function hardly reacts any more, as the softmax does once it gives nearly all to one.",
    "score": "How well a query suits a key: their dot product.",
    "seed": "A number from which random numbers are made, the same ones each time.",
    "softmax": "What turns any numbers into shares above 0 that add up to 1, the largest share for the largest number.",
    "state": "The vector that a model which reads one word after the other carries along.",
    "temperature": "A number that divides what enters the softmax: below 1 the shares get sharper, above 1 evener.",
    "token": "A piece of text that a model reads as one: a word, a part of one, or a sign.",
    "transformer": "A model made of layers of attention; nearly all language models today are Transformers.",
    "value": "What a token hands over to those who look at it.",
    "vector": "A list of numbers.",
    "weight": "The share, from 0 to 1, that one token takes of another; the weights of a row add up to 1.",
}
