"""Copies of a call's terms with every head separate."""

from torch import Tensor

from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import widened

__all__ = ["bias_of_each_head", "rows_of_each_head"]


def rows_of_each_head(rows: Tensor, attention: Attention) -> Tensor:
    """Copy query or value per head, (head, position, width)."""
    return rows.expand(attention.shape[0], *rows.shape[-2:]).clone()


def bias_of_each_head(attention: Attention) -> Tensor:
    """Copy the bias per head, (head, query, key), at least float32; 0 without one."""
    bias = attention.query.new_zeros(()) if attention.bias is None else attention.bias
    return widened(bias).expand(attention.shape).clone()
