"""The words of the subject, one sentence each: what a reader sees when resting on a term."""

__all__ = ["TERMS"]

TERMS: dict[str, str] = {
    "attention": "A way to make each word's vector anew as a mixture of all vectors, in shares that add up to 1.",
    "embedding": "The list of numbers that stands for a token.",
    "head": "One of several attentions that work side by side in a layer, each with its own queries, keys and values.",
    "key": "What a token advertises: a vector that queries are compared with.",
    "layer": "One round of attention and what follows it; a model stacks several.",
    "query": "What a token asks for: a vector that is compared with every key.",
    "token": "A piece of text that a model reads as one: a word, a part of one, or a sign.",
    "value": "What a token hands over to those who look at it.",
    "vector": "A list of numbers.",
    "weight": "The share, from 0 to 1, that one token takes of another; the weights of a row add up to 1.",
}
