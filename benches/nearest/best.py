def best(bench, earlier):
    raise NotImplementedError
