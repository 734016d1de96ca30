"""Who computes the chunks of a scan: each engine hands them back in their order, with the same bits as any other."""
