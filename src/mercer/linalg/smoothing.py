SITES = ("gaussian",)
