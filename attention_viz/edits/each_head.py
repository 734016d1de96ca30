"""The terms of a call as copies in which each head has its own, so that one head's can be changed."""

from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import widened

__all__ = ["bias_of_each_head", "rows_of_each_head"]


def rows_of_each_head(rows: Tensor, attention: Attention) -> Tensor:
    """Query or value, (head, position, width), a copy in which each head has its own."""
    return rows.expand(attention.shape[0], *rows.shape[-2:]).clone()


def bias_of_each_head(attention: Attention) -> Tensor:
    """Each head's bias, (head, query, key), a copy in float32 or finer; 0 where there was none."""
    bias = attention.query.new_zeros(()) if attention.bias is None else attention.bias
    return widened(bias).expand(attention.shape).clone()
